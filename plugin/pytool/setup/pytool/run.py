import sandshell_tool  # a module of its own, so that it is compiled once

if __name__ == "__main__":  # and not when multiprocessing imports it
    sandshell_tool.main()
