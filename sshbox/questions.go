package sshbox

import (
	"errors"
	"fmt"
	"regexp"

	"golang.org/x/crypto/ssh"
)

// addPassword adds the two ways in which a server asks for a password, and others of its questions.
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

// givePassword returns the password, for its one use.
func (l *login) givePassword() (string, error) {
	l.given = true
	l.tried = append(l.tried, "password")
	password, err := l.password()
	if err != nil {
		l.err = fmt.Errorf("the password: %w", err)
	}
	return password, l.err
}

var errUnanswered = errors.New("nobody answers that")

// questions is the ssh.KeyboardInteractiveChallenge. If one of a round's questions cannot be
// answered, none is.
func (l *login) questions(_, _ string, questions []string, echos []bool) ([]string, error) {
	given := l.given
	for i, q := range questions {
		if !given && l.password != nil && forPassword(q, echos[i]) {
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
		if !l.given && l.password != nil && forPassword(q, echos[i]) {
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

// A question is for the password if it does not echo and ends as PAM's, FreeBSD's and Kerberos' do:
// "Password:", "Password for root@host:". Other clients match alike (sshj, JSch, sshpass). A new
// password, a one-time password and a code are something else.
var (
	account  = regexp.MustCompile(`\S*@\S*`)
	password = regexp.MustCompile(`(?i)\b(password|passwd)\b[^:]*(:\s*)?$`)
	other    = regexp.MustCompile(
		`(?i)\b(new|retype|re-enter|again|confirm|repeat|one[- ]?time|otp|token|code|pin)\b`)
)

func forPassword(question string, echo bool) bool {
	question = account.ReplaceAllString(question, "")
	return !echo && password.MatchString(question) && !other.MatchString(question)
}
