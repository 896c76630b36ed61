#define EM_VERSION "0.1.0"
#define EM_COMMIT  "b0be7b3f521f"
#define EM_MPIRUN  "mpirun"
