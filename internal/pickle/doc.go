// Package pickle decodes the data of Python pickles, protocols 2 to 5, as PyTorch writes them (pytorch/pytorch, torch/csrc/jit/serialization/pickler.cpp) and
// as Python's pickle module does: dictionaries, lists, tuples, numbers, texts, bytes, booleans and None.
//
// A pickle is a program of a stack machine. Opcodes that only build data are executed; opcodes that import a name, call a function or refer to an object
// outside of the file (GLOBAL, REDUCE, BUILD, PERSID, EXT1, …) end the decoding with a CodeError. No code of the pickle ever runs.
//
// # Bounds
//
// A value is the position of its opcode in the file, so numbers and texts take no memory of their own. Containers, the memo and the stack share one buffer of
// two bytes for each byte of the file and a MiB: a file whose values need more is refused (ErrDense). A reference to a value is the value itself, and no copy.
// The time is linear in the size of the file. A container may be in itself, and may have many references: the reader of a Value must bound depth and
// repetition.
package pickle
