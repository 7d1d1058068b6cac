check 'roman 2026' MMXXVI "$(sh bin/roman 2026)"
check 'roman MMXXVI' 2026 "$(sh bin/roman MMXXVI)"
