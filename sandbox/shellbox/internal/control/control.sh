# The control shell's functions, for any POSIX sh. They use builtins where speed matters: a fork
# costs more than all the rest.
#
# answers.go calls them, one line for each question, and reads what they print. They leave out what
# they cannot find out; that is no error.
#
#   tree PID...      the processes that descend from these, and they themselves, each once and none
#                    before its parent, one per line:
#                      P pid state ppid pgrp session tty tpgid starttime startcode comm
#                    with the words of /proc/PID/stat
#   look PID IMAGE TURNS
#                    the tree of this one process, and behind each process the turns (the third word
#                    of schedstat) of its threads, one per line:
#                      T tid turns what
#                    if it is in the foreground process group of its terminal, or has no terminal,
#                    or is the first; of any other only
#                      B turns
#                    what is
#                      tty    it is blocked in a read of its terminal (where it has none, of the
#                             first process's)
#                      woken  so says the kernel's function in which it is blocked; its system call
#                             is not ours to see; or it is blocked in select or epoll with only that
#                             terminal to read, and no time limit
#                      asks   it is blocked in select or epoll, which ask for that terminal too, or
#                             for some time
#                      poll   it is blocked in poll or select, and the terminal is among descriptors
#                             0 to 2: nobody sees what they ask for
#                      one    so, in poll of one descriptor without a time limit
#                      hpoll  so, but its system call is not ours to see
#                      run    it runs
#                      ?      nothing shows
#                      -      anything else
#                    If somebody may wait for a terminal, the uptime follows, and the modes of each
#                    such terminal, in several lines:
#                      U seconds
#                      M tty
#                      what modes prints
#                    What the first process is blocked in reading, if that is no terminal: the
#                    file's name; nothing if its turns are TURNS:
#                      R name
#                    At last, unless starttime, startcode and comm are IMAGE, its arguments, one a
#                    line, with NUL for the end of a line:
#                      A
#                    A process that is gone has the line G, and nothing else.
#   program PID      its directory, and its environment, one variable a line, with NUL for the end
#                    of a line
#   alive PID...     those that there are, zombies too, as P lines with "-" for startcode and
#                    nothing for comm
#   marked WORD      on one line, the ids of the processes that had WORD in their environment at
#                    their start
#   modes TTY        words that hold -icanon if the terminal of this number (tty above) is in raw
#                    mode, -echo if it does not echo; nothing if it cannot be opened
#   sane TTY         puts its modes in order: stty sane -onlcr -echoctl
#   discard TTY PID  drops the input that it holds, and that PID, who feeds it, still has for it:
#                    the number of bytes
#   uptime           seconds since the start of the machine, the clock of starttime
#   send NAMES PID...
#                    sends each process the signals, names without SIG or numbers, separated by
#                    commas: the line "sent" for each sent
#   interrupt PID    sends INT to the foreground process group of its terminal: the line "sent"
exec 2>/dev/null
LC_ALL=C; export LC_ALL
unset ENV BASH_ENV
_nl='
'
# The numbers of the system calls: those that read their first descriptor; sendfile, which reads its
# second (busybox's cat); those that poll; those that ask an epoll.
case `uname -m` in
x86_64|amd64) _reads=' 0 19 275 ' _send=40 _poll=7 _ppoll=271 _select=23 _pselect=270 _polls=' 7 23 270 271 ' _epolls=' 232 281 441 ' ;;
aarch64|arm64|riscv64|loongarch64) _reads=' 63 65 76 ' _send=71 _poll=none _ppoll=73 _select=none _pselect=72 _polls=' 72 73 ' _epolls=' 22 441 ' ;;
*) _reads=' 3 ' _send=none _poll=none _ppoll=none _select=none _pselect=none _polls= _epolls= ;;
esac

# _stat PID: sets the words of /proc/PID/stat behind the command's name: _st state ppid pgrp session
# tty tpgid; starttime is the 20th.
_stat() {
  _l=; _s=
  while IFS= read -r _l; do _s=$_s$_l; done </proc/$1/stat
  _s=${_s##*) }
  [ "$_s" ]
}

# _process PID: as _stat. It has not ended (Z) if only its main thread has.
_process() {
  _stat $1 || return
  case $_s in Z*)
    set -- $_s
    [ $((${18})) -le 1 ] || _s="S ${_s#* }" ;;
  esac
}

# _walk FUNCTION PID...: calls the function with the id and the words of stat of each process of the
# tree.
_walk() {
  _fn=$1; shift
  _w="$*" _seen=' '
  while [ "$_w" ]; do
    _n=
    for _p in $_w; do
      case $_seen in *" $_p "*) continue ;; esac
      _seen="$_seen$_p "
      _process $_p || continue
      $_fn $_p $_s
      for _t in /proc/$_p/task/*; do
        _c=; read -r _c <$_t/children; _n="$_n $_c"
      done
    done
    _w=${_n# }
    case $_w in *[0-9]*) ;; *) _w= ;; esac
  done
}

_line() {
  _c=; IFS= read -r _c </proc/$1/comm
  _e=${25} # a static busybox lies there again when it executes itself; its stack does not
  [ ${#_e} = 1 ] || _e=$_e${27}
  _e="${21} $_e $_c"
  _o="${_o}P $1 $2 $3 $4 $5 $6 $7 $_e$_nl"
}

tree() {
  _o=
  _walk _line "$@"
  printf %s "$_o"
}

look() {
  _root=$1 _o= _tty=0 _key= _ask= _file= _turns=
  if _stat $1; then
    _walk _see $1
  elif [ -r /proc/self/stat ] || ! kill -0 $1; then
    echo G; return
  else
    return
  fi
  printf %s "$_o"
  if [ "$_ask" ]; then
    read -r _a _ </proc/uptime; echo "U $_a"
    for _a in $_ask; do echo "M $_a"; modes $_a; done
  fi
  if [ "$_file" ] && [ "$_turns" != "${3:-none}" ]; then
    # A shell that hides its system call reads a pipe, and descriptor 0 is one: probably that.
    [ $_file != '?' ] || [ ! -p /proc/$1/fd/0 ] || _file=0
    _v=pipe
    [ $_file = '?' ] || _link /proc/$1/fd/$_file
    echo "R ${_v%%$_nl*}"
  elif [ "$_file" ]; then
    echo R
  fi
  [ "$_key" = "${2-}" ] || { echo A; tr '\0\n' '\n\0' </proc/$1/cmdline; }
}

_see() {
  _line "$@"
  _at=$6
  if [ $1 = $_root ]; then
    _tty=$6 _key=$_e
  elif [ $6 = 0 ]; then
    _at=$_tty
  elif [ $4 != $7 ]; then
    _y=; read -r _ _ _y </proc/$1/schedstat
    _o="${_o}B $_y$_nl"
    return
  fi
  for _t in /proc/$1/task/*; do _thread $1 $_t $_at; done
}

# _thread PID TASKDIR TTY
_thread() {
  _k=; _x=; _y=; _f=-
  read -r _k <$2/wchan
  read -r _x <$2/syscall
  read -r _ _ _y <$2/schedstat
  _x1=${_x%% *}
  case $_k in
  *poll*|*select*) _polling $2 $3 ;;
  *) case $_x1 in
    '') _stat $1/task/${2##*/} || return # it has just ended
      case $_s in Z*) return ;; esac
      _hiding $2 ;;
    running) _f=run ;;
    *) _blocked $1 $2 $3 ;;
    esac ;;
  esac
  [ $2 != /proc/$_root/task/$_root ] || _turns=$_y
  case $_f in -|run) ;; *) # somebody may wait
    case " $_ask" in *" $3 "*) ;; *) _ask="$_ask$3 " ;; esac ;;
  esac
  _o="${_o}T ${2##*/} ${_y:--} $_f$_nl"
}

# _polling TASKDIR TTY
_polling() {
  case $_epolls in *" $_x1 "*) _epolling $1 $2 $_x; return ;; esac
  for _i in 0 1 2; do
    _terminal $1/fd/$_i $2 || continue
    _f=poll
    case $_x1 in
    '') _f=hpoll ;;
    $_select|$_pselect) _selecting $_x ;;
    $_poll|$_ppoll)
      case "$_x1 ${_x#* * }" in
      "$_poll 0x1 0xffffffff "*|"$_poll 0x1 0xffffffffffffffff "*|"$_ppoll 0x1 0x0 "*) _f=one ;;
      esac ;;
    esac
    return
  done
}

# _selecting NUMBER DESCRIPTORS READ WRITE EXCEPT LIMIT...: of one descriptor at most nobody has to
# see which it is.
_selecting() {
  case "$2 $3 $_i" in
  '0x0 '*|'0x1 0x0 '*) _f=- ;;
  '0x1 '*' 0') case "$4 $5 $6" in '0x0 0x0 0x0') _f=tty ;; *) _f=asks ;; esac ;;
  esac
}

# _epolling TASKDIR TTY NUMBER EPOLL EVENTS MAX LIMIT...: the kernel tells what an epoll asks for,
# and each descriptor's events (1: to read).
_epolling() {
  _q=
  while read -r _a _b _ _e2 _; do
    case $_a$_e2 in
    tfd:*[13579bdf]) if _terminal $1/fd/$_b $2; then _f=asks; else _q=others; fi ;;
    tfd:*) _q=others ;;
    esac
  done <$1/fdinfo/$(($4))
  case $_f$_q$7 in asks0xffffffff|asks0xffffffffffffffff) _f=tty ;; esac
}

_hiding() {
  case $_k in
  ''|0) _f='?' ;;
  wait_woken|n_tty_read) _f=woken ;;
  *pipe*) [ $1 != /proc/$_root/task/$_root ] || _file='?' ;;
  esac
}

_blocked() {
  _x2=${_x#* }
  case $_reads$_send in
  *" $_x1 "*) ;;
  *" $_x1") _x2=${_x2#* } ;;
  *) case ${_k:-0}$_polls$_epolls in 0*" $_x1 "*) _polling $2 $3 ;; esac
    return ;;
  esac
  _x2=$((${_x2%% *}))
  if _terminal $2/fd/$_x2 $3; then
    _f=tty
  elif [ $2 = /proc/$_root/task/$_root ]; then
    _file=$_x2
  fi
}

# _terminal FILE TTY
_terminal() { _pts $2 && [ $1 -ef $_d ] || [ $1 -ef /dev/tty ]; }

# _link LINK: sets _v to what it points to.
_link() {
  _v=`readlink $1` && return
  _v=`ls -l $1`
  case $_v in *' -> '*) _v=${_v#* -> } ;; *) _v= ;; esac
}

program() {
  _link /proc/$1/cwd
  printf %s "$_v" | tr '\n' '\0'
  echo
  tr '\0\n' '\n\0' </proc/$1/environ
  echo
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
      _process $_p || continue
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

# In subshells: dash opens the file in the shell itself, and a terminal without a session would
# become this shell's controlling terminal.
modes() { _pts $1 && (stty -a <$_d); }

sane() { _pts $1 && (stty sane -onlcr -echoctl <$_d); }

# A line that is not finished can be read in raw mode only. Each cat reads what is there; the kernel
# then has room for more (4096 bytes). Who feeds the terminal, as sshd does, is awake while it has
# more and there is room.
discard() {
  _pts $1 || return
  (
    _m=`stty -g` && stty -icanon -echo min 0 time 0 || exit
    _n=0 _a=0
    until [ $((_a += 1)) -gt 1000 ]; do
      _s=; _stat $2
      _y=`cat | wc -c`
      _n=$((_n + _y))
      case $((_y)) in 0) case $_s in R*) ;; *) break ;; esac ;; esac
    done
    stty "$_m"
    echo $_n
  ) <$_d
}

uptime() { read -r _a _ </proc/uptime; echo $_a; }

send() {
  _g=
  IFS=,; for _q in $1; do _g="$_g $_q"; done; unset IFS
  shift
  for _p in $*; do
    for _q in $_g; do kill -$_q $_p && echo sent; done
  done
}

interrupt() {
  _stat $1 || return
  set -- $_s
  [ ${6:-0} -gt 1 ] && kill -INT -$6 && echo sent # busybox knows no --
}
