package view

import "errors"

// The viewer's page shows what Chrome would draw outside the page: a dialog, a picker and a file
// chooser of the shown tab. Each has a number, which the person's answer repeats. An answer with
// another number is to something that the tab does not ask any more.

// newQuestion returns the number of a new dialog, picker or file chooser.
func (s *server) newQuestion(kind messageKind) int64 {
	s.questions[kind]++
	return s.questions[kind]
}

// showQuestions has the viewer's page show what the shown tab asks, or nothing.
func (s *server) showQuestions() error {
	dialog, picker, chooser := Dialog{Type: "dialog"}, Picker{Type: "picker"}, Chooser{Type: "chooser"}
	if c := s.shown; c != nil {
		if c.dialog != nil {
			dialog = *c.dialog
		}
		if c.picker != nil {
			picker = c.picker.Picker
		}
		if c.chooser != nil {
			chooser = c.chooser.Chooser
		}
	}
	return errors.Join(s.ask(dialogMessage, dialog.Number, dialog), s.ask(pickerMessage, picker.Number, picker), s.ask(chooserMessage, chooser.Number, chooser))
}

// ask sends a question unless the viewer's page shows it already.
func (s *server) ask(kind messageKind, number int64, question any) error {
	if number == s.asked[kind] {
		return nil
	}
	s.asked[kind] = number
	return s.sendJSON(kind, question)
}
