#include "data/text/stop_words.h"

const char em_stop_words_english[] =
    "a about above after again against ain't all also am an and any are aren't as at be "
    "because been before being below between both but by can can't cannot could couldn't did "
    "didn't do does doesn't doing don't down during each either else ever every few for from "
    "further had hadn't has hasn't have haven't having he he'd he'll he's her here here's "
    "hers herself him himself his how how's however i i'd i'll i'm i've if in into is isn't "
    "it it'd it'll it's its itself just let's may me might mightn't more most must mustn't my "
    "myself needn't neither no nor not now of off on once one only or other others ought our "
    "ours ourselves out over own rather same shall shan't she she'd she'll she's should "
    "shouldn't since so some still such than that that'd that'll that's the their theirs them "
    "themselves then there there's these they they'd they'll they're they've this those "
    "though through thus to too under until up upon us very was wasn't we we'd we'll we're "
    "we've were weren't what what's when when's where where's whether which while who who's "
    "whom whose why why's will with within without won't would wouldn't yet you you'd you'll "
    "you're you've your yours yourself yourselves";
