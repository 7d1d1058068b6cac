package main

import "testing"

func TestEval(t *testing.T) {
	for text, want := range map[string]float64{"1+2*3": 7, "(1+2)*3": 9, "-2*-3": 6, "8/4/2": 1} {
		if got, err := eval(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1+", "(1", "1/0", "1 2"} {
		if _, err := eval(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
