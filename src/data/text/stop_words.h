/* English words that say nothing of what a text is about. */
#ifndef EM_DATA_TEXT_STOP_WORDS_H
#define EM_DATA_TEXT_STOP_WORDS_H

extern const char em_stop_words_english[]; /* between blanks */

#endif
