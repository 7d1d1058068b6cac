# said WORDS...: prints what the command says when it refuses, and its exit code.
said() {
    sh bin/roman "$@" 2>&1
    echo "exit $?"
}

check 'roman 0' 'roman: 0 is not between 1 and 3999
exit 2' "$(said 0)"
check 'roman 4000' 'roman: 4000 is not between 1 and 3999
exit 2' "$(said 4000)"
check 'roman IIII' 'roman: IIII is no Roman numeral
exit 2' "$(said IIII)"
check 'roman MMMM' 'roman: MMMM is no Roman numeral
exit 2' "$(said MMMM)"
check 'roman VAX' 'roman: VAX is no Roman numeral
exit 2' "$(said VAX)"
check 'roman' 'roman: usage: roman NUMBER|NUMERAL
exit 2' "$(said)"
