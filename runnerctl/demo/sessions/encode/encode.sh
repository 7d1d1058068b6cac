# encode NUMBER: prints a number from 1 to 3999 as a Roman numeral.
encode() {
    rest=$1
    numeral=
    for pair in 1000:M 900:CM 500:D 400:CD 100:C 90:XC 50:L 40:XL 10:X 9:IX 5:V 4:IV 1:I; do
        while [ "$rest" -ge "${pair%:*}" ]; do
            numeral=$numeral${pair#*:}
            rest=$((rest - ${pair%:*}))
        done
    done
    printf '%s\n' "$numeral"
}
