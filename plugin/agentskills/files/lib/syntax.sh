# Checking syntax, with what is here. Only by what reads the file and runs nothing of it: perl -c
# runs BEGIN blocks, and is not among them.

# checked NAME FILE ERRORS reports whether FILE is fine, as far as can be told, under the name NAME;
# else the file ERRORS says why not.
checked() {
	: >"$3"
	with=$(checker "$1" "$2")
	command -v "${with%% *}" >/dev/null || return 0
	"check_${with##* }" "$2" "${1##*/}" >/dev/null 2>"$3"
	case $? in
	0 | 126 | 127) return 0 ;;
	esac
	! [ -s "$3" ] # a checker that says nothing was killed, or has died
}

# checker NAME FILE prints the program that can check the file, and the kind of file.
checker() {
	name=${1##*/}
	case $name in
	*.py | *.pyi) echo python3 python ;;
	*.json | *.ipynb) if command -v python3 >/dev/null; then echo python3 json; else echo jq jq; fi ;;
	*.toml) echo python3 toml ;;
	*.yaml | *.yml) echo python3 yaml ;;
	*.go) echo gofmt go ;;
	*.js | *.cjs) echo node js ;;
	*.mjs) echo node mjs ;;
	*.rb) echo ruby ruby ;;
	*.php) echo php php ;;
	*.bash) echo bash bash ;;
	*.sh) case $(first_line "$2") in '#!'*bash*) echo bash bash ;; '#!'*zsh* | '#!'*ksh*) ;; '#!'*) echo sh sh ;; *) shell ;; esac ;;
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

# shell prints the checker of a script that says not for which shell it is: what bash takes may be
# meant for it.
shell() { if command -v bash >/dev/null; then echo bash bash; else echo sh sh; fi; }

# Each check_ gets the file, and its name for messages, which are on stderr.

check_python() {
	python "$1" "$2" 'compile(f.read(), name, "exec", dont_inherit=True)' # writes no .pyc
}
check_json() { python "$1" "$2" 'import json; json.loads(f.read())'; }
check_toml() { python "$1" "$2" 'import tomllib; tomllib.load(f)'; }
check_yaml() { python "$1" "$2" 'import yaml; list(yaml.parse(f))'; }

# python FILE NAME CODE. Errors of the file are ValueErrors, but for two; all others say something
# about the checker.
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

# node goes by the name. A .js may be a module or not, which its package.json says, or the code
# itself.
check_js() {
	cp "$1" "$work/check.cjs" && node --check "$work/check.cjs" && return
	grep -qE '^[[:space:]]*(import|export)[^[:alnum:]_]' "$1" || return
	check_mjs "$1" 2>"$work/module" && return
	cat "$work/module" >&2
	return 1
}
check_mjs() { cp "$1" "$work/check.mjs" && node --check "$work/check.mjs"; }

# note_errors TITLE ERRORS NAME prints what a checker said, in terms of the file's name.
note_errors() {
	echo "$1"
	WORK=$work NAME=${3##*/} awk -f "$lib/visible.awk" -f "$lib/errors.awk" "$2"
}
