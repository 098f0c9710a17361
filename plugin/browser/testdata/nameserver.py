"""A name server that knows no name, and prints the names that it is asked for."""
import socket

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 53))
while True:
    query, client = s.recvfrom(4096)
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode())
        at += query[at] + 1
    print(".".join(labels), flush=True)
    # NXDOMAIN, with the question and no answers.
    s.sendto(query[:2] + b"\x81\x83" + query[4:6] + b"\0" * 6 + query[12 : at + 5], client)
