"""Makes DIR/simple, an index for pip of the Python packages that Debian has installed here, and
DIR/lib, with the libraries that they need."""
import glob
import importlib.metadata
import os
import re
import subprocess
import sys
import zipfile

ROOT = "/usr/lib/python3/dist-packages/"
simple, lib = os.path.join(sys.argv[1], "simple"), os.path.join(sys.argv[1], "lib")
os.makedirs(lib)


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


distributions = {}  # by the names of their packages
for d in importlib.metadata.distributions(path=[ROOT]):
    distributions[output("dpkg", "-S", str(d._path)).split(":")[0]] = d

for package, d in distributions.items():
    name, version = re.sub("[-_.]+", "-", d.metadata["Name"]).lower(), d.version
    module = name.replace("-", "_")
    info = "%s-%s.dist-info/" % (module, version)
    # d.requires is not used, because in Debian's packages it is incomplete.
    fields = output("dpkg-query", "-W", "-f", "${Depends}", package)
    depends = re.findall(r"python3-[a-z0-9.+-]+", fields)
    requires = [distributions[p].metadata["Name"] for p in depends if p in distributions]
    directory = os.path.join(simple, name)
    os.makedirs(directory, exist_ok=True)
    wheel = os.path.join(directory, "%s-%s-py3-none-any.whl" % (module, version))
    with zipfile.ZipFile(wheel, "w") as z:
        for path in output("dpkg", "-L", package).splitlines():
            if (path.startswith(ROOT) and os.path.isfile(path)
                    and not re.search(r"\.(dist|egg)-info\b", path)):
                z.write(path, path[len(ROOT):])
        z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: %s\nVersion: %s\n%s" % (
            name, version, "".join("Requires-Dist: %s\n" % r for r in requires)))
        z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\n"
                   "Root-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(info + "RECORD", "")

for compiled in glob.glob(ROOT + "zmq/**/*.so", recursive=True):
    for library in re.findall("=> (/\\S+)", output("ldd", compiled)):
        if not re.search("/(libc|libm|libpthread|libstdc|libgcc)", library):
            subprocess.run(["cp", "-L", library, lib], check=True)
