import sandshell_tool  # a module of its own, so that it is compiled once

sandshell_tool.main()
