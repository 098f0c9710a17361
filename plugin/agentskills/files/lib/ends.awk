# Prints lines with new ends. cr is 1 for CRLF. final is 0 if the last line has no newline.
cr { sub(/\r$/, "") }
NR > 1 { print line (cr ? "\r" : "") }
{ line = $0 }
END { if (NR) printf "%s%s", line, (final ? (cr ? "\r\n" : "\n") : "") }
