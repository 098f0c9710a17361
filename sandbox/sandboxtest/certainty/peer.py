"""A peer on 127.0.0.1: python3 peer.py FILE [COMMAND...]

It writes its port to FILE. Each connection becomes stdin and stdout of COMMAND. Without a COMMAND,
it accepts connections and says nothing.
"""

import os
import socket
import subprocess
import sys

server = socket.create_server(("127.0.0.1", 0))
with open(sys.argv[1] + ".new", "w") as f:
    print(server.getsockname()[1], file=f)
os.rename(sys.argv[1] + ".new", sys.argv[1])
connections = []
while True:
    connection, _ = server.accept()
    if sys.argv[2:]:
        subprocess.Popen(sys.argv[2:], stdin=connection, stdout=connection)
        connection.close()
    else:
        connections.append(connection)
