# Checking syntax, with the checkers that are installed. A checker must not run any code of the
# file. perl -c runs BEGIN blocks, so it is not used.

# checked NAME FILE ERRORS fails if FILE has a syntax error under the name NAME. The file ERRORS
# then has the checker's output. Without a checker it succeeds.
checked() {
	: >"$3"
	with=$(checker "$1" "$2")
	command -v "${with%% *}" >/dev/null || return 0
	"check_${with##* }" "$2" "${1##*/}" >/dev/null 2>"$3"
	case $? in
	0 | 126 | 127) return 0 ;;
	esac
	! [ -s "$3" ] # a checker without output was killed or has crashed
}

# checker NAME FILE prints the program that can check the file, and the suffix of the function
# check_.
checker() {
	name=${1##*/}
	case $name in
	*.py | *.pyi) echo python3 python ;;
	*.json | *.ipynb)
		if command -v python3 >/dev/null; then echo python3 json; else echo jq jq; fi
		;;
	*.toml) echo python3 toml ;;
	*.yaml | *.yml) echo python3 yaml ;;
	*.go) echo gofmt go ;;
	*.js | *.cjs) echo node js ;;
	*.mjs) echo node mjs ;;
	*.rb) echo ruby ruby ;;
	*.php) echo php php ;;
	*.bash) echo bash bash ;;
	*.sh)
		case $(first_line "$2") in
		'#!'*bash*) echo bash bash ;;
		'#!'*zsh* | '#!'*ksh*) ;;
		'#!'*) echo sh sh ;;
		*) shell ;;
		esac
		;;
	*.*) ;;
	*)
		case $(first_line "$2") in
		'#!'*python*) echo python3 python ;;
		'#!'*bash*) echo bash bash ;;
		'#!'*/sh | '#!'*/sh\ * | '#!'*/dash* | '#!'*/ash* | '#!'*env\ sh) echo sh sh ;;
		'#!'*node*) echo node js ;;
		'#!'*ruby*) echo ruby ruby ;;
		'#!'*php*) echo php php ;;
		esac
		;;
	esac
}

first_line() { head -n 1 "$1" | tr -d '\r' | cut -c 1-200; }

# shell prints the checker of a script that does not name its shell. It is bash if possible, because
# the script may be meant for bash.
shell() { if command -v bash >/dev/null; then echo bash bash; else echo sh sh; fi; }

# Each check_ function gets the file, and the name for its messages, which go to stderr.

check_python() {
	python "$1" "$2" 'compile(f.read(), name, "exec", dont_inherit=True)' # writes no .pyc
}
check_json() { python "$1" "$2" 'import json; json.loads(f.read())'; }
check_toml() { python "$1" "$2" 'import tomllib; tomllib.load(f)'; }
check_yaml() { python "$1" "$2" 'import yaml; list(yaml.parse(f))'; }

# python FILE NAME CODE runs CODE to check FILE. Errors of the file are SyntaxErrors, ValueErrors
# and those of yaml. Other errors are the checker's own, and are ignored.
python() {
	python3 -I -W ignore -c '
import sys, traceback
path, name, code = sys.argv[1:]
try:
    with open(path, "rb") as f:
        exec(code)
except Exception as e:
    if isinstance(e, (SyntaxError, ValueError)) or type(e).__module__.startswith("yaml"):
        sys.stderr.write("".join(traceback.format_exception_only(type(e), e)))
        sys.exit(1)
' "$1" "$2" "$3"
}

check_jq() { jq empty "$1"; }
check_bash() { bash -n "$1"; }
check_sh() { sh -n "$1"; }
check_go() { gofmt -e <"$1"; }
check_ruby() { ruby -c "$1"; }
check_php() { php -l "$1" >&2; }

# node decides by the file's name whether it is a module. For a .js it depends on package.json and
# the code, so both ways are tried.
check_js() {
	cp "$1" "$work/check.cjs" && node --check "$work/check.cjs" && return
	grep -qE '^[[:space:]]*(import|export)[^[:alnum:]_]' "$1" || return
	check_mjs "$1" 2>"$work/module" && return
	cat "$work/module" >&2
	return 1
}
check_mjs() { cp "$1" "$work/check.mjs" && node --check "$work/check.mjs"; }

# note_errors TITLE ERRORS NAME prints the checker's output, with NAME in place of the copy's path.
note_errors() {
	echo "$1"
	WORK=$work NAME=${3##*/} awk -f "$lib/visible.awk" -f "$lib/errors.awk" "$2"
}
