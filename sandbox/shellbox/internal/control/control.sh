# The functions of the control shell, for any POSIX sh. They use builtins where speed matters: a
# fork costs more than all the rest.
#
# answers.go calls one function for each question, and parses what it prints. A function leaves out
# what it cannot find out. That is not an error.
#
#   tree PID...      prints these processes and their descendants, each once, and each after its
#                    parent, one per line:
#                      P pid state:blocked:sigcatch ppid pgrp session tty tpgid starttime
#                      startcode comm
#                    The words are those of /proc/PID/stat.
#   look PID IMAGE TURNS
#                    prints the tree of this process. A line for each thread follows its process if
#                    the process is the first one, has no terminal, or is in the foreground process
#                    group of its terminal:
#                      T tid turns what
#                    Any other process is followed by one line, with the turns of its main thread:
#                      B turns
#                    turns is the third word of schedstat. what is one of
#                      tty    The thread is blocked in a read of its terminal; or in a select or
#                             epoll that waits only for this terminal, without a time limit. If
#                             the process has no terminal, it is the first process's.
#                      woken  The kernel function in which it is blocked reads a terminal. Its
#                             system call is hidden from this shell.
#                      asks   It is blocked in a select or epoll that waits for its terminal and
#                             for something else, or has a time limit.
#                      poll   It is blocked in a poll or select, and the terminal is among its
#                             descriptors 0 to 2. What it waits for cannot be seen.
#                      one    As poll, but it is a poll of one descriptor without a time limit.
#                      hpoll  As poll, but its system call is hidden from this shell.
#                      run    It runs.
#                      live   It sleeps, or waits for something else that may come by itself.
#                      clock  It waits in a futex, for a time.
#                      tick   It waits in a futex, until a time.
#                      futex  It waits in a futex. A time limit cannot be seen.
#                      child  It waits for a child.
#                      signal It waits for a signal, without a time limit.
#                      pipe   It reads or writes a pipe.
#                      ?      Nothing is known.
#                      -      It cannot go on by itself.
#                    If a thread may wait for a terminal, the uptime follows, and the modes of each
#                    such terminal, as the function modes prints them, in several lines:
#                      U seconds
#                      M tty
#                      ...
#                    If the first process is blocked in reading a file that is no terminal, a word
#                    follows that tells this file from others. If the turns of its main thread are
#                    TURNS, the line has no word:
#                      R file
#                    If starttime, startcode and comm are not IMAGE, the process's arguments follow,
#                    one per line, with NUL in place of a line end:
#                      A
#                      ...
#                    If the process has ended, the only line is G.
#   shell PID        prints the P line of this process, and the R line that look prints when it
#                    reads its standard input.
#   program PID      prints the working directory, and the environment, one variable per line, with
#                    NUL in place of a line end.
#   alive PID...     prints the processes that exist, zombies included, as P lines with "-" for
#                    startcode and nothing for comm.
#   marked WORD      prints on one line the ids of the processes that had WORD in their environment
#                    when they executed their program.
#   modes TTY        prints words: -icanon is among them if the terminal with this number (tty
#                    above) is in raw mode, and -echo if it does not echo. Prints nothing if the
#                    terminal cannot be opened.
#   sane TTY         sets its modes: stty sane -onlcr -echoctl.
#   discard TTY PID  drops the input that the terminal holds, and the input that process PID, which
#                    has the terminal's master, still has for it. Prints the number of bytes.
#   uptime           prints the seconds since the start of the machine, on the clock of starttime.
#   send NAMES PID...
#                    sends each process, or the process group -PID, the signals NAMES: names
#                    without SIG, or numbers, separated by commas. Prints the line "sent" for each
#                    signal sent.
#   interrupt PID    sends INT to the foreground process group of the process's terminal. Prints the
#                    line "sent" if it was sent.
exec 2>/dev/null
LC_ALL=C; export LC_ALL
unset ENV BASH_ENV
_nl='
'
# Numbers of system calls. _reads: those that read the descriptor in their first argument. _send:
# sendfile, which reads that in its second (busybox's cat uses it). _polls: poll, select and their
# like. _epolls: those that wait for an epoll. _childs: those that wait for a child. _restart: the
# call that continues one that a signal has interrupted.
case `uname -m` in
x86_64|amd64)
	_reads=' 0 19 275 ' _send=40 _poll=7 _ppoll=271 _select=23 _pselect=270
	_polls=' 7 23 270 271 ' _epolls=' 232 281 441 '
	_futex=202 _sleeps=' 35 230 ' _childs=' 61 247 ' _signals=' 34 130 ' _timedsignal=128
	_writes=' 1 20 ' _restart=219
	;;
aarch64|arm64|riscv64|loongarch64)
	_reads=' 63 65 76 ' _send=71 _poll=none _ppoll=73 _select=none _pselect=72
	_polls=' 72 73 ' _epolls=' 22 441 '
	_futex=98 _sleeps=' 101 115 ' _childs=' 95 260 ' _signals=' 133 ' _timedsignal=137
	_writes=' 64 66 ' _restart=128
	;;
*)
	_reads=' 3 ' _send=none _poll=none _ppoll=none _select=none _pselect=none _polls= _epolls=
	_futex=none _sleeps= _childs= _signals= _timedsignal=none _writes=' 4 ' _restart=none
	;;
esac

# _stat PID: sets _s to the words of /proc/PID/stat after the command's name. They begin with state
# ppid pgrp session tty tpgid; the 20th is starttime.
_stat() {
  _l=; _s=
  while IFS= read -r _l; do _s=$_s$_l; done </proc/$1/stat
  _s=${_s##*) }
  [ "$_s" ]
}

# _process PID: as _stat. But if only the process's main thread has ended, the state is S, not Z.
_process() {
  _stat $1 || return
  case $_s in Z*)
    set -- $_s
    [ $((${18})) -le 1 ] || _s="S ${_s#* }" ;;
  esac
}

# _walk FUNCTION PID...: calls FUNCTION for each process of the tree, with its id and the words of
# _stat.
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

# _line PID WORDS...: adds the P line of a process to _o, and sets _e to what changes with exec.
_line() {
  _c=; IFS= read -r _c </proc/$1/comm
  _e=${25} # a static busybox that executes itself has the same startcode, but another stack
  [ ${#_e} = 1 ] || _e=$_e${27}
  _e="${21} $_e $_c"
  _o="${_o}P $1 $2:${31-}:${33-} $3 $4 $5 $6 $7 $_e$_nl"
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
    # The shell reads a pipe, but its system call is hidden. If descriptor 0 is a pipe, assume it.
    [ $_file != '?' ] || [ ! -p /proc/$1/fd/0 ] || _file=0
    _v=pipe
    [ $_file = '?' ] || _opened $1 $_file
    echo "R ${_v%%$_nl*}"
  elif [ "$_file" ]; then
    echo R
  fi
  [ "$_key" = "${2-}" ] || { echo A; tr '\0\n' '\n\0' </proc/$1/cmdline; }
}

# _see PID WORDS...: adds the lines of a process to _o. WORDS are those of _stat.
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

# _thread PID TASKDIR TTY: adds the line of a thread to _o.
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
  case $_f in
  child|signal) [ $1 != ${2##*/} ] || _timing $1 ;;
  -|run|live|clock|tick|futex|pipe) ;;
  *) # the thread may wait
    case " $_ask" in *" $3 "*) ;; *) _ask="$_ask$3 " ;; esac ;;
  esac
  _o="${_o}T ${2##*/} ${_y:--} $_f$_nl"
}

# _timing PID: sets _f to live if a POSIX timer may send the process a signal.
_timing() {
  while read -r _a _b; do
    case $_a$_b in notify:signal/pid*) _f=live ;; esac
  done </proc/$1/timers
}

# _polling TASKDIR TTY: sets _f for a thread in a poll, select or epoll.
_polling() {
  _f=live
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

# _selecting NUMBER DESCRIPTORS READ WRITE EXCEPT LIMIT...: sets _f for a select of at most one
# descriptor: which one that is needs no look at the set.
_selecting() {
  case "$2 $3 $_i" in
  '0x0 '*|'0x1 0x0 '*) _f=live ;;
  '0x1 '*' 0') case "$4 $5 $6" in '0x0 0x0 0x0') _f=tty ;; *) _f=asks ;; esac ;;
  esac
}

# _epolling TASKDIR TTY NUMBER EPOLL EVENTS MAX LIMIT...: sets _f for an epoll. Its fdinfo has the
# descriptors and their events (1: input).
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

# _hiding TASKDIR: sets _f for a thread whose system call is hidden, by the kernel's function.
_hiding() {
  case $_k in
  ''|0) _f='?' ;;
  wait_woken|n_tty_read) _f=woken ;;
  *pipe*) _f=pipe; [ $1 != /proc/$_root/task/$_root ] || _file='?' ;;
  *) _inside ;;
  esac
}

# _inside: sets _f by the kernel's function, for a thread that is in no call that waits for files.
_inside() {
  case $_k in
  *futex*) _f=futex ;;
  do_wait|*wait4*|*waitid*) _f=child ;;
  *sigsuspend*|*pause*) _f=signal ;;
  do_signal_stop|*ptrace_stop*) _f=- ;;
  *) _f=live ;;
  esac
}

# _waiting NUMBER ARGUMENT...: sets _f for a thread in a call that waits for no files.
_waiting() {
  case $_sleeps$_childs$_signals in *" $1 "*)
    case $_childs in *" $1 "*) _f=child; return ;; esac
    case $_signals in *" $1 "*) _f=signal; return ;; esac
    _f=live; return ;;
  esac
  case $1 in
  $_futex)
    # The operation's lowest bits: 0 waits for a time, the others until a time. A fifth bit and
    # above do not matter (FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME).
    case $(($3 & 127)),$5 in
    *,0x0) _f=- ;;
    0,*) _f=clock ;;
    [69],*|1[13],*) _f=tick ;;
    *) _f=- ;;
    esac ;;
  $_timedsignal) case $4 in 0x0) _f=signal ;; *) _f=live ;; esac ;;
  $_restart) case $_k in *futex*) _f=clock ;; *) _f=live ;; esac ;;
  *) _inside ;;
  esac
}

# _blocked PID TASKDIR TTY: sets _f for a thread that is blocked in a system call.
_blocked() {
  _x2=${_x#* }
  case $_reads$_send in
  *" $_x1 "*) ;;
  *" $_x1") _x2=${_x2#* } ;;
  *) case ${_k:-0}$_polls$_epolls in
    0*" $_x1 "*) _polling $2 $3; return ;;
    esac
    case $_writes in
    *" $_x1 "*) ;;
    *) _waiting $_x; return ;;
    esac
    _x2=$((${_x2%% *})) _f=live
    [ ! -p $2/fd/$_x2 ] || _f=pipe
    return ;;
  esac
  _x2=$((${_x2%% *}))
  _f=live
  if _terminal $2/fd/$_x2 $3; then
    _f=tty
    return
  elif [ -p $2/fd/$_x2 ]; then
    _f=pipe
  fi
  if [ $2 = /proc/$_root/task/$_root ]; then
    _file=$_x2
  fi
}

# _terminal FILE TTY: whether the file is the terminal.
_terminal() { _pts $2 && [ $1 -ef $_d ] || [ $1 -ef /dev/tty ]; }

# _link LINK: sets _v to the target of the link.
_link() {
  _v=`readlink $1` && return
  _v=`ls -l $1`
  case $_v in *' -> '*) _v=${_v#* -> } ;; *) _v= ;; esac
}

# _opened PID DESCRIPTOR: sets _v to what tells the open file from others. Since Linux 5.14, no
# other process is needed for that.
_opened() {
  _v= _q=
  while read -r _a _b; do
    case $_a in mnt_id:) _q=$_b ;; ino:) _v=$_q:$_b ;; esac
  done </proc/$1/fdinfo/$2
  [ "$_v" ] || _link /proc/$1/fd/$2
}

shell() {
  _o=
  _stat $1 && _line $1 $_s || return
  _opened $1 0
  [ -z "$_v" ] || _o="${_o}R ${_v%%$_nl*}$_nl"
  printf %s "$_o"
}

program() {
  _link /proc/$1/cwd
  printf %s "$_v" | tr '\n' '\0'
  echo
  tr '\0\n' '\n\0' </proc/$1/environ
  echo
}

# _pts TTY: sets _d to the terminal's device file. Fails if it is no pseudoterminal (major numbers
# 136 to 143).
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

# stty is in a subshell, because dash opens the file in the shell itself. A terminal without a
# session would then become this shell's controlling terminal.
modes() { _pts $1 && (stty -a <$_d); }

sane() { _pts $1 && (stty sane -onlcr -echoctl <$_d); }

# An unfinished line can be read only in raw mode. Each cat reads what is there. The kernel then has
# room for 4096 more bytes. As long as the process that has the master, such as sshd, has more input
# and there is room, it runs.
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
