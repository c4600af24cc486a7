package pickle

import "strconv"

// The opcodes that build data: CPython, Lib/pickle.py.
const (
	opMark            = '('
	opStop            = '.'
	opPop             = '0'
	opPopMark         = '1'
	opDup             = '2'
	opFloat           = 'F'
	opInt             = 'I'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opLong            = 'L'
	opBinInt2         = 'M'
	opNone            = 'N'
	opBinString       = 'T'
	opShortBinString  = 'U'
	opBinUnicode      = 'X'
	opAppend          = 'a'
	opDict            = 'd'
	opEmptyDict       = '}'
	opAppends         = 'e'
	opBinGet          = 'h'
	opLongBinGet      = 'j'
	opList            = 'l'
	opEmptyList       = ']'
	opBinPut          = 'q'
	opLongBinPut      = 'r'
	opSetItem         = 's'
	opTuple           = 't'
	opEmptyTuple      = ')'
	opSetItems        = 'u'
	opBinFloat        = 'G'
	opBinBytes        = 'B'
	opShortBinBytes   = 'C'
	opProto           = 0x80
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opBinBytes8       = 0x8e
	opMemoize         = 0x94
	opFrame           = 0x95
)

// refused are the names of all other opcodes; true: the opcode runs code or reaches out of the file.
var refused = map[byte]struct {
	name string
	code bool
}{
	'P': {"PERSID", true}, 'Q': {"BINPERSID", true}, 'R': {"REDUCE", true}, 'b': {"BUILD", true}, 'c': {"GLOBAL", true}, 'i': {"INST", true}, 'o': {"OBJ", true},
	0x81: {"NEWOBJ", true}, 0x82: {"EXT1", true}, 0x83: {"EXT2", true}, 0x84: {"EXT4", true}, 0x92: {"NEWOBJ_EX", true}, 0x93: {"STACK_GLOBAL", true},
	0x97: {"NEXT_BUFFER", true}, 0x98: {"READONLY_BUFFER", true},
	'S': {"STRING", false}, 'V': {"UNICODE", false}, 'g': {"GET", false}, 'p': {"PUT", false},
	0x8f: {"EMPTY_SET", false}, 0x90: {"ADDITEMS", false}, 0x91: {"FROZENSET", false}, 0x96: {"BYTEARRAY8", false},
}

// CodeError says that a pickle is no plain data: an opcode imports, calls or reaches out of the file. The opcode is not followed.
type CodeError struct {
	Opcode string // the name in CPython's Lib/pickle.py
	Offset int    // B, from the beginning of the file
}

func (e *CodeError) Error() string {
	return "the pickle holds code: " + e.Opcode + " at byte " + strconv.Itoa(e.Offset) + ", and is not followed"
}
