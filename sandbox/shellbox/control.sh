# The control shell's functions, for any POSIX sh. Only builtins where it matters: a fork costs more than all the rest.
exec 2>/dev/null
LC_ALL=C; export LC_ALL
unset ENV BASH_ENV
_nl='
'
case `uname -m` in
x86_64|amd64) _read=0 ;;
aarch64|arm64|riscv64|loongarch64) _read=63 ;;
*) _read=3 ;;
esac

# _stat PID: sets the words of /proc/PID/stat behind the command's name: _st state ppid pgrp session tty tpgid; starttime is the 20th.
_stat() {
  _l=; _s=
  while IFS= read -r _l; do _s=$_s$_l; done </proc/$1/stat
  _s=${_s##*) }
  [ "$_s" ]
}

# tree PID...: the processes that descend from these, and they themselves, one per line:
#   P pid state ppid pgrp session tty tpgid starttime startcode comm
# and, of those in the foreground process group of their terminal, the threads:
#   T tid timeslices tty|-|? wchan|- syscall...
tree() {
  _w="$*" _o=
  while [ "$_w" ]; do
    _n=
    for _p in $_w; do
      _stat $_p || continue
      IFS= read -r _c </proc/$_p/comm
      set -- $_s
      _o="${_o}P $_p $1 $2 $3 $4 $5 $6 ${20} ${24} $_c$_nl"
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
  "$_read "*)
    _x2=${_x#* }
    _fd=/proc/$1/fd/$((${_x2%% *}))
    if [ $_fd -ef /dev/pts/$(($3 & 255 | ($3 >> 20) << 8)) ] || [ $_fd -ef /dev/tty ]; then _f=tty; fi ;;
  '') _f='?' ;;
  esac
  _o="${_o}T ${2##*/} ${_y:--} $_f ${_k:--} $_x$_nl"
}

# alive PID...: those that there are, as P lines
alive() {
  _o=
  if [ -r /proc/self/stat ]; then
    for _p in $*; do
      _stat $_p || continue
      set -- $_s
      _o="${_o}P $_p $1 $2 $3 $4 $5 $6 ${20} - -$_nl"
    done
    printf %s "$_o"
  else
    for _p in $*; do
      kill -0 $_p && echo "P $_p S 0 0 0 0 0 0 - -"
    done
  fi
}

# marked WORD: the ids of the processes that have WORD in their environment at their start
marked() {
  _o=
  for _d in `grep -lsF -e "$1" /proc/[0-9]*/environ`; do
    _d=${_d#/proc/}; _o="$_o ${_d%/environ}"
  done
  echo $_o
}

# modes TTY: the terminal's modes as stty -a says them, nothing if it cannot
modes() { stty -a </dev/pts/$(($1 & 255 | ($1 >> 20) << 8)); }

# sane TTY: puts the terminal's modes in order
sane() { stty sane -onlcr -echoctl </dev/pts/$(($1 & 255 | ($1 >> 20) << 8)); }

# uptime: seconds since the start of the machine
uptime() { read -r _a _ </proc/uptime; echo $_a; }
