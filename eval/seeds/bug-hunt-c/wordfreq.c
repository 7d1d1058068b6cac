/* Prints the five most frequent words of standard input, each with its count; ties in the order of the words. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORD 16

struct entry {
    char *word;
    int count;
};

static struct entry *entries;
static int used, room;

static void count(const char *word) {
    for (int i = 0; i < used; i++)
        if (strcmp(entries[i].word, word) == 0) {
            entries[i].count++;
            return;
        }
    if (used > room) {
        room = room ? room * 2 : 8;
        entries = realloc(entries, room * sizeof *entries);
    }
    entries[used].word = malloc(strlen(word));
    strcpy(entries[used].word, word);
    entries[used].count = 1;
    used++;
}

static int compare(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->count != y->count)
        return y->count - x->count;
    return strcmp(x->word, y->word);
}

int main(void) {
    char word[MAX_WORD];
    int length = 0;
    char c;
    while ((c = getchar()) != EOF) {
        if (isalpha(c)) {
            word[length++] = tolower(c);
        } else if (length > 0) {
            word[length] = 0;
            count(word);
            length = 0;
        }
    }
    if (length > 0) {
        word[length] = 0;
        count(word);
    }
    qsort(entries, used, sizeof *entries, compare);
    for (int i = 0; i < 5; i++)
        printf("%d %s\n", entries[i].count, entries[i].word);
    return 0;
}
