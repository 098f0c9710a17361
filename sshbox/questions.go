package sshbox

import (
	"errors"
	"fmt"
	"regexp"

	"golang.org/x/crypto/ssh"
)

// addPassword adds the methods "keyboard-interactive" and "password".
func (l *login) addPassword(c DialConfig) {
	switch {
	case c.Password != "":
		l.password = func() (string, error) { return c.Password, nil }
	case c.AskPassword != nil:
		l.password = func() (string, error) {
			return callback(l.ctx, "DialConfig.AskPassword", c.AskPassword, nil)
		}
	}
	if l.password != nil || l.answer != nil {
		questions := ssh.KeyboardInteractive(l.questions)
		l.methods = append(l.methods, method{"keyboard-interactive", questions})
	}
	if l.password != nil {
		l.methods = append(l.methods, method{"password", ssh.PasswordCallback(l.givePassword)})
	}
}

// givePassword returns the password, and records that the server gets it.
func (l *login) givePassword() (string, error) {
	l.passwordGiven = true
	l.tried = append(l.tried, "password")
	password, err := l.password()
	if err != nil {
		l.err = fmt.Errorf("the password: %w", err)
	}
	return password, l.err
}

var errUnanswered = errors.New("nobody answers that")

// questions is the ssh.KeyboardInteractiveChallenge. If it cannot answer one of the questions, it
// answers none of them.
func (l *login) questions(_, _ string, questions []string, echos []bool) ([]string, error) {
	given := l.passwordGiven
	for i, q := range questions {
		if !given && l.password != nil && asksForPassword(q, echos[i]) {
			given = true
		} else if l.answer == nil {
			l.asked = append(l.asked, abridged(q))
		}
	}
	if len(l.asked) > 0 {
		return nil, errUnanswered
	}
	answers := make([]string, len(questions))
	for i, q := range questions {
		var err error
		if !l.passwordGiven && l.password != nil && asksForPassword(q, echos[i]) {
			answers[i], err = l.givePassword()
		} else {
			l.tried = append(l.tried, fmt.Sprintf("an answer to %q", abridged(q)))
			ask := func() (string, error) { return l.answer(q) }
			if answers[i], err = callback(l.ctx, "DialConfig.Answer", ask, nil); err != nil {
				l.err = fmt.Errorf("the answer to %q: %w", abridged(q), err)
			}
		}
		if err != nil {
			return nil, l.err
		}
	}
	return answers, nil
}

func abridged(question string) string {
	if len(question) > 100 {
		return question[:100] + "…"
	}
	return question
}

// A question asks for the password if it does not echo and ends like those of PAM, FreeBSD and
// Kerberos: "Password:", "Password for root@host:". The clients sshj, JSch and sshpass match in the
// same way. Questions for a new password, a one-time password or a code are not for the password.
var (
	account  = regexp.MustCompile(`\S*@\S*`)
	password = regexp.MustCompile(`(?i)\b(password|passwd)\b[^:]*(:\s*)?$`)
	other    = regexp.MustCompile(
		`(?i)\b(new|retype|re-enter|again|confirm|repeat|one[- ]?time|otp|token|code|pin)\b`)
)

func asksForPassword(question string, echo bool) bool {
	question = account.ReplaceAllString(question, "")
	return !echo && password.MatchString(question) && !other.MatchString(question)
}
