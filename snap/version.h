#define EM_VERSION "0.1.0"
#define EM_COMMIT  "d25660fd43c8-dirty"
#define EM_MPIRUN  "mpirun"
