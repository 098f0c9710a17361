# Programs that ask at the terminal, or work while a thread reads it. The argument says which.
WORK = 60
$stdout.sync = true

def ask
  print 'name? '
  $stdin.gets
end

def pump
  Thread.new { $stdin.each_line {} }
  puts 'working'
end

case ARGV[0]
when 'ask' then ask
when 'thread' then Thread.new { ask }.join
when 'beside'
  Thread.new { loop { sleep 1 } }
  ask
when 'sleeps'
  pump
  sleep WORK
when 'burns'
  pump
  start = Time.now
  nil while Time.now - start < WORK
end
exit!
