. ./lib/decode.sh

check 'decode III' 3 "$(decode III)"
check 'decode MDCLXVI' 1666 "$(decode MDCLXVI)"
check 'decode IV' 4 "$(decode IV)"
check 'decode MCMXCIV' 1994 "$(decode MCMXCIV)"
