#!/bin/sh
# cargo calls this in place of the compiler for the packages of the workspace: the stable compiler counts which code is
# reached, and the comparisons, with a pass of LLVM, in the crates that are fuzzed. The dependencies are the same as in
# every other build.
case " $* " in
*" --crate-name orphand "* | *" --crate-name orphand_core "* | *" --crate-name fuzz "*)
  set -- "$@" -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
  ;;
esac
exec "$@"
