/* Prints the five most frequent words of standard input, each with its count; ties in the order of the words. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char *word;
    size_t count;
};

static struct entry *entries;
static size_t used, room;

static void *grown(void *block, size_t size) {
    block = realloc(block, size);
    if (!block) {
        perror("wordfreq");
        exit(1);
    }
    return block;
}

/* Takes the word. */
static void count(char *word) {
    for (size_t i = 0; i < used; i++)
        if (strcmp(entries[i].word, word) == 0) {
            entries[i].count++;
            free(word);
            return;
        }
    if (used == room) {
        room = room ? room * 2 : 8;
        entries = grown(entries, room * sizeof *entries);
    }
    entries[used].word = word;
    entries[used].count = 1;
    used++;
}

static int compare(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return strcmp(x->word, y->word);
}

int main(void) {
    char *word = NULL;
    size_t length = 0, space = 0;
    int c;
    do {
        c = getchar();
        if (c != EOF && isalpha(c)) {
            if (length + 1 >= space) {
                space = space ? space * 2 : 16;
                word = grown(word, space);
            }
            word[length++] = (char)tolower(c);
        } else if (length > 0) {
            word[length] = 0;
            count(word);
            word = NULL;
            length = space = 0;
        }
    } while (c != EOF);
    if (used > 0)
        qsort(entries, used, sizeof *entries, compare);
    for (size_t i = 0; i < used && i < 5; i++)
        printf("%zu %s\n", entries[i].count, entries[i].word);
    for (size_t i = 0; i < used; i++)
        free(entries[i].word);
    free(entries);
    return 0;
}
