. ./lib/encode.sh

check 'encode 3' III "$(encode 3)"
check 'encode 4' IV "$(encode 4)"
check 'encode 1994' MCMXCIV "$(encode 1994)"
check 'encode 3999' MMMCMXCIX "$(encode 3999)"
