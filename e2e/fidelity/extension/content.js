// Passes messages of the page to the extension. The page posts {extension: {do, …}} with a port.
addEventListener('message', async ({ data, ports }) => {
  if (data?.extension) ports[0].postMessage(await chrome.runtime.sendMessage(data.extension));
});
document.documentElement.dataset.keeper = 'here';
