"""A package index of one package. It prints its port, and each request on stderr."""
import http.server
import io
import zipfile

NAME, INFO = "teapot-1.0-py3-none-any.whl", "teapot-1.0.dist-info/"
wheel = io.BytesIO()
with zipfile.ZipFile(wheel, "w") as z:
    z.writestr("teapot.py", "def main(): print('a teapot')\n")
    z.writestr(INFO + "METADATA", "Metadata-Version: 2.1\nName: teapot\nVersion: 1.0\n")
    z.writestr(INFO + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\n"
               "Root-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr(INFO + "entry_points.txt", "[console_scripts]\nteapot = teapot:main\n")
    z.writestr(INFO + "RECORD", "")


class Index(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = self.path == "/simple/teapot/"
        link = b'<a href="/%s">%s</a>' % (NAME.encode(), NAME.encode())
        body = link if page else wheel.getvalue()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if page else "application/zip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control",
                         "max-age=600" if page else "max-age=365000000, immutable, public")
        self.end_headers()
        self.wfile.write(body)


# The port is fixed, because it is part of the key of pip's cache.
server = http.server.HTTPServer(("127.0.0.1", 8000), Index)
print(server.server_port, flush=True)
server.serve_forever()
