# The control shell's functions, for any POSIX sh. They use builtins where speed matters: a fork costs more than all the rest.
#
# answers.go calls them, one line for each question, and reads what they print. They leave out what they cannot find out; that is no error.
#
#   tree PID...      the processes that descend from these, and they themselves, each once and none before its parent, one per line:
#                      P pid state ppid pgrp session tty tpgid starttime startcode comm
#                    with the words of /proc/PID/stat; and behind each that is in the foreground process group of its terminal, its threads:
#                      T tid timeslices tty|-|? wchan|- syscall...
#                    with the third word of schedstat, "tty" if it is blocked in a read of its terminal, "?" if its system call is not
#                    ours to see, and the words of /proc/PID/syscall
#   alive PID...     those that there are, zombies too, as P lines with "-" for startcode and nothing for comm
#   marked WORD      on one line, the ids of the processes that had WORD in their environment at their start
#   modes TTY        words that hold -icanon if the terminal of this number (tty above) is in raw mode, -echo if it does not echo;
#                    nothing if it cannot be opened
#   sane TTY         puts its modes in order: stty sane -onlcr -echoctl
#   uptime           seconds since the start of the machine, the clock of starttime
#   send NAMES PID... sends each process the signals, names without SIG or numbers, separated by commas: the line "sent" for each sent
exec 2>/dev/null
LC_ALL=C; export LC_ALL
unset ENV BASH_ENV
_nl='
'
case `uname -m` in
x86_64|amd64) _read=0 _send=40 ;;
aarch64|arm64|riscv64|loongarch64) _read=63 _send=71 ;;
*) _read=3 _send=none ;;
esac

# _stat PID: sets the words of /proc/PID/stat behind the command's name: _st state ppid pgrp session tty tpgid; starttime is the 20th.
_stat() {
  _l=; _s=
  while IFS= read -r _l; do _s=$_s$_l; done </proc/$1/stat
  _s=${_s##*) }
  [ "$_s" ]
}

tree() {
  _w="$*" _o= _seen=' '
  while [ "$_w" ]; do
    _n=
    for _p in $_w; do
      case $_seen in *" $_p "*) continue ;; esac
      _seen="$_seen$_p "
      _stat $_p || continue
      _c=; IFS= read -r _c </proc/$_p/comm
      set -- $_s
      _e=${24} # a static busybox lies there again when it executes itself; its stack does not
      [ ${#_e} = 1 ] || _e=$_e${26}
      _o="${_o}P $_p $1 $2 $3 $4 $5 $6 ${20} $_e $_c$_nl"
      for _t in /proc/$_p/task/*; do
        _c=; read -r _c <$_t/children; _n="$_n $_c"
        [ $3 = $6 ] && _thread $_p $_t $5
      done
    done
    _w=${_n# }
    case $_w in *[0-9]*) ;; *) _w= ;; esac
  done
  printf %s "$_o"
}

# _thread PID TASKDIR TTY
_thread() {
  _k=; _x=; _y=; _f=-
  read -r _k <$2/wchan
  read -r _x <$2/syscall
  read -r _ _ _y <$2/schedstat
  case $_x in
  "$_read "*|"$_send "*) # sendfile: busybox's cat, and others
    _x2=${_x#* }
    case $_x in "$_send "*) _x2=${_x2#* } ;; esac
    _fd=/proc/$1/fd/$((${_x2%% *}))
    if _pts $3 && [ $_fd -ef $_d ] || [ $_fd -ef /dev/tty ]; then _f=tty; fi ;;
  '') [ -d $2 ] || return # it has just ended
    _f='?' ;;
  esac
  _o="${_o}T ${2##*/} ${_y:--} $_f ${_k:--} $_x$_nl"
}

# _pts TTY: sets _d to the device, a pseudoterminal: majors 136 to 143.
_pts() {
  _d=/dev/pts/$(($1 & 255 | ($1 >> 20) << 8))
  [ $(($1 >> 8 & 4088)) = 136 ]
}

alive() {
  _o=
  if [ -r /proc/self/stat ]; then
    for _p in $*; do
      _stat $_p || continue
      set -- $_s
      _o="${_o}P $_p $1 $2 $3 $4 $5 $6 ${20} - $_nl"
    done
    printf %s "$_o"
  else
    for _p in $*; do
      kill -0 $_p && echo "P $_p S 0 0 0 0 0 0 - "
    done
  fi
}

marked() {
  [ "$1" ] || return # every environment contains the empty word
  _o=
  for _d in `grep -lsF -e "$1" /proc/[0-9]*/environ`; do
    _d=${_d#/proc/}; _o="$_o ${_d%/environ}"
  done
  echo $_o
}

# In subshells: dash opens the file in the shell itself, and a terminal without a session would become this shell's controlling terminal.
modes() { _pts $1 && (stty -a <$_d); }

sane() { _pts $1 && (stty sane -onlcr -echoctl <$_d); }

uptime() { read -r _a _ </proc/uptime; echo $_a; }

send() {
  _g=
  IFS=,; for _q in $1; do _g="$_g $_q"; done; unset IFS
  shift
  for _p in $*; do
    case $_p in ''|0|*[!0-9]*) continue ;; esac # 0 and less are groups
    for _q in $_g; do kill -$_q $_p && echo sent; done
  done
}
