#define EM_VERSION "0.1.0"
#define EM_COMMIT "b0ab0d32d983-dirty"
#define EM_MPIRUN "mpirun"
