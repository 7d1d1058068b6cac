// Command calc prints the value of an expression.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
)

type parser struct {
	text string
	at   int
}

var errSyntax = errors.New("not an expression")

func (p *parser) peek() byte {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) sum() (float64, error) {
	left, err := p.product()
	for err == nil && (p.peek() == '+' || p.peek() == '-') {
		op := p.peek()
		p.at++
		var right float64
		right, err = p.product()
		if op == '-' {
			right = -right
		}
		left += right
	}
	return left, err
}

func (p *parser) product() (float64, error) {
	left, err := p.factor()
	for err == nil && (p.peek() == '*' || p.peek() == '/') {
		op := p.peek()
		p.at++
		var right float64
		right, err = p.factor()
		switch {
		case op == '*':
			left *= right
		case right == 0:
			return 0, errors.New("division by zero")
		default:
			left /= right
		}
	}
	return left, err
}

func (p *parser) factor() (float64, error) {
	switch c := p.peek(); {
	case c == '-':
		p.at++
		value, err := p.factor()
		return -value, err
	case c == '(':
		p.at++
		value, err := p.sum()
		if err == nil && p.peek() != ')' {
			err = errSyntax
		}
		p.at++
		return value, err
	case c >= '0' && c <= '9':
		begin := p.at
		for p.at < len(p.text) && (p.text[p.at] == '.' || p.text[p.at] >= '0' && p.text[p.at] <= '9') {
			p.at++
		}
		return strconv.ParseFloat(p.text[begin:p.at], 64)
	}
	return 0, errSyntax
}

func eval(text string) (float64, error) {
	p := parser{text: text}
	value, err := p.sum()
	if err == nil && p.peek() != 0 {
		err = errSyntax
	}
	return value, err
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "error: one expression is wanted")
		os.Exit(2)
	}
	value, err := eval(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	fmt.Println(strconv.FormatFloat(value+0, 'f', -1, 64))
}
