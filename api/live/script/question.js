// question shows what the tab asks the person in a dialog element, until the person or another
// client has answered it, or another tab is shown. The person's answer is sent as a command with
// the fields that answer returns for the button that was chosen.
function question(element, command, answer) {
  const q = {
    number: 0, // of what is shown; 0: nothing
    show(number) {
      q.number = number;
      element.returnValue = "";
      if (!element.open) element.showModal();
    },
    close() {
      q.number = 0;
      element.close();
    },
  };
  element.onclose = () => {
    if (element.open) return; // the event is late: the next question is shown already
    if (q.number) control(command, { number: q.number, ...answer(element.returnValue) });
    q.number = 0;
    keys.focus();
  };
  return q;
}
