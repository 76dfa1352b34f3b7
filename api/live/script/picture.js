let drawing = Promise.resolve();
function draw(data) {
  drawing = drawing.then(async () => {
    const header = new DataView(data, 0, headerSize);
    const frame = Number(header.getBigInt64(0));
    try {
      const image = await createImageBitmap(new Blob([new Uint8Array(data, headerSize)], { type: "image/jpeg" }));
      if (socket.readyState !== WebSocket.OPEN) return; // the page says so, and must not look alive
      shown = { width: header.getFloat32(8), height: header.getFloat32(12), top: header.getFloat32(16) };
      if (picture.width !== image.width || picture.height !== image.height) {
        picture.width = image.width;
        picture.height = image.height;
      }
      // Over a slow connection the picture has fewer pixels than the tab.
      picture.style.setProperty("--width", `${shown.width}px`);
      picture.style.setProperty("--ratio", image.width / image.height);
      paper.drawImage(image, 0, 0);
      image.close();
      picture.classList.remove("off");
      if (!noticed) note.textContent = "";
    } finally {
      send("drawn", { frame });
    }
  });
}
