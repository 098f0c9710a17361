import sandshell_tool  # a module, unlike this script, is compiled only once

sandshell_tool.main()
