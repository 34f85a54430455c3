# gdb -x tools/tutorials.gdb build-debug/bin/tutorials/...: stepping passes over the standard library.
skip -gfi /usr/include/c++/*
skip -gfi /usr/include/c++/*/*
skip -gfi /usr/include/*/c++/*/*/*
