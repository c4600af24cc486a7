package pairs

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/ascii"
)

// word is a word of a loop in another language.
type word struct{ other, english string }

// words are the words of losses, steps, epochs and their like, and signs of full width; a longer word is before one that is its beginning.
var words = []word{
	{"训练损失", "train loss"},
	{"验证损失", "val loss"},
	{"测试损失", "test loss"},
	{"平均损失", "loss"},
	{"总损失", "loss"},
	{"损失值", "loss"},
	{"损失", "loss"},
	{"訓練損失", "train loss"},
	{"驗證損失", "val loss"},
	{"検証損失", "val loss"},
	{"損失", "loss"},
	{"손실", "loss"},
	{"训练准确率", "train acc"},
	{"验证准确率", "val acc"},
	{"测试准确率", "test acc"},
	{"准确率", "accuracy"},
	{"準確率", "accuracy"},
	{"精度", "accuracy"},
	{"学习率", "lr"},
	{"學習率", "lr"},
	{"学習率", "lr"},
	{"학습률", "lr"},
	{"训练轮次", "epoch"},
	{"轮次", "epoch"},
	{"轮", "epoch"},
	{"輪", "epoch"},
	{"周期", "epoch"},
	{"エポック", "epoch"},
	{"에포크", "epoch"},
	{"训练步数", "step"},
	{"步数", "step"},
	{"步骤", "step"},
	{"步", "step"},
	{"ステップ", "step"},
	{"스텝", "step"},
	{"迭代次数", "iteration"},
	{"次迭代", "iteration"},
	{"迭代", "iteration"},
	{"批次", "batch"},
	{"批", "batch"},
	{"耗时", "time"},
	{"用时", "time"},
	{"时间", "time"},
	{"毫秒", "ms"},
	{"秒", "s"},
	{"pérdida", "loss"},
	{"Pérdida", "Loss"},
	{"потери", "loss"},
	{"лосс", "loss"},
	{"Потери", "Loss"},
	{"época", "epoch"},
	{"Época", "Epoch"},
	{"эпоха", "epoch"},
	{"Эпоха", "Epoch"},
	{"étape", "step"},
	{"Étape", "Step"},
	{"шаг", "step"},
	{"Шаг", "Step"},
	{"время", "time"},
	{"tiempo", "time"},
	{"perte", "loss"},
	{"：", ": "},
	{"，", ", "},
	{"、", ", "},
	{"；", "; "},
	{"（", " ("},
	{"）", ") "},
	{"【", "["},
	{"】", "]"},
	{"｜", "|"},
	{"＝", "="},
	{"。", ""},
}

// hasForeignWord reports whether a line names a loss, a step or an epoch in another language, or numbers one (第). Mostly parts of words are looked for that are
// the same in capitals and small letters: "rdida" of pérdida, "tape" of étape.
func hasForeignWord(b []byte) bool {
	for _, w := range [...]string{
		"损失", "損失", "손실", "轮", "輪", "周期", "エポック", "에포크", "第", "步数", "步骤", "迭代", "ステップ", "스텝", "rdida", "poca", "поха", "отери", "лосс", "шаг", "Шаг", "tape",
	} {
		if bytes.Contains(b, []byte(w)) {
			return true
		}
	}
	return false
}

var ordinal = []byte("第")

// english appends to out a line with its known words in English, and returns the result: "第 3/10 轮, 损失: 0.52" becomes "epoch 3/10 , loss: 0.52". A number
// between an ordinal and the name moves to the place after the name, and the ordinal is left out; unknown words stay.
func english(out, b []byte) []byte {
	for len(b) > 0 {
		if rest, ok := bytes.CutPrefix(b, ordinal); ok {
			rest = bytes.TrimLeft(rest, " ")
			n := 0
			for n < len(rest) && (ascii.IsDigit(rest[n]) || rest[n] == '/' || rest[n] == ' ') {
				n++
			}
			after := bytes.TrimPrefix(rest[n:], []byte("个")) // a measure word of Chinese
			if name, m := counted(after); m > 0 && n > 0 {
				out = append(append(out, name...), ' ')
				out = append(append(out, bytes.TrimSpace(rest[:n])...), ' ')
				b = after[m:]
				continue
			}
			b = rest
			continue
		}
		w := find(b)
		if w == nil {
			out = append(out, b[0])
			b = b[1:]
			continue
		}
		out = append(out, w.english...)
		b = b[len(w.other):]
	}
	return out
}

// find returns the word at the beginning of b; nil: none. All begin with a byte beyond ASCII, but for tiempo, perte and pérdida, possibly with a capital.
func find(b []byte) *word {
	if c := b[0]; c < 0x80 && c != 't' && c != 'p' && c != 'P' {
		return nil
	}
	for i := range words {
		if bytes.HasPrefix(b, []byte(words[i].other)) {
			return &words[i]
		}
	}
	return nil
}

// counted returns the English name at the beginning of b, the text after a number, and the length of the name in b; 0: none.
func counted(b []byte) (name string, n int) {
	if len(b) == 0 {
		return "", 0
	}
	if w := find(b); w != nil {
		return w.english, len(w.other)
	}
	for _, name := range [...]string{"epoch", "step", "iteration", "batch"} {
		if len(b) >= len(name) && bytes.EqualFold(b[:len(name)], []byte(name)) {
			return name, len(name)
		}
	}
	return "", 0
}
