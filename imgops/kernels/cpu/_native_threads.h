/* Threads that take parts of a call. They sleep between calls and never spin, and the caller waits only for threads that
 * have begun: where other programs hold the cores, it does all parts itself. One call uses them at a time; another call
 * does its work alone. A forked process starts its own. Included by _native.c.
 */
enum { PARTS_PER_THREAD = 4 };

typedef void (*Work)(void *job, Py_ssize_t start, Py_ssize_t stop);

#if defined(__GNUC__) && !defined(_WIN32)
#include <pthread.h>
#include <signal.h>

enum { MOST_THREADS = 256 };

typedef struct {
    Work work;
    void *job;
    Py_ssize_t count, part, next;
} Call;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t begun, done;
    Call *call;
    int threads, wanted, running; /* that exist, that the call still takes, that run its parts */
} pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0, 0, 0};

static void take_parts(Call *call) {
    for (;;) {
        Py_ssize_t start = __atomic_fetch_add(&call->next, call->part, __ATOMIC_RELAXED);
        Py_ssize_t stop = start + call->part;
        if (start >= call->count) return;
        call->work(call->job, start, stop < call->count ? stop : call->count);
    }
}

static void *take_calls(void *nothing) {
    (void)nothing;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        Call *call;
        while (!pool.wanted) pthread_cond_wait(&pool.begun, &pool.lock);
        pool.wanted--;
        pool.running++;
        call = pool.call;
        pthread_mutex_unlock(&pool.lock);
        take_parts(call);
        pthread_mutex_lock(&pool.lock);
        if (!--pool.running) pthread_cond_signal(&pool.done);
    }
    return NULL;
}

/* With the lock: start threads until there are `count`, which get no signals; return how many there are. */
static int start_threads(int count) {
    sigset_t all, before;
    if (count > MOST_THREADS) count = MOST_THREADS;
    if (pool.threads >= count) return count;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.threads < count) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, take_calls, NULL)) break;
        pthread_detach(thread);
        pool.threads++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pool.threads < count ? pool.threads : count;
}

/* The threads of the parent do not exist in a child. */
static void forget_threads(void) {
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.begun, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.call = NULL;
    pool.threads = pool.wanted = pool.running = 0;
}

static void prepare_threads(void) { pthread_atfork(NULL, NULL, forget_threads); }

/* Do `work` on [0, count) by at most this many threads. */
static void in_parallel(int threads, Py_ssize_t count, Work work, void *job) {
    Call call = {work, job, count, 0, 0};
    int is_mine = 0;
    if (threads > count) threads = (int)count;
    if (threads > 1) {
        pthread_mutex_lock(&pool.lock);
        if ((is_mine = !pool.call)) {
            call.part = (count + threads * PARTS_PER_THREAD - 1) / (threads * PARTS_PER_THREAD);
            pool.call = &call;
            pool.wanted = start_threads(threads - 1);
            if (pool.wanted == 1)
                pthread_cond_signal(&pool.begun);
            else
                pthread_cond_broadcast(&pool.begun);
        }
        pthread_mutex_unlock(&pool.lock);
    }
    if (!is_mine) {
        if (count) work(job, 0, count);
        return;
    }
    take_parts(&call);
    pthread_mutex_lock(&pool.lock);
    pool.wanted = 0; /* a thread that has not begun is not needed */
    while (pool.running) pthread_cond_wait(&pool.done, &pool.lock);
    pool.call = NULL;
    pthread_mutex_unlock(&pool.lock);
}
#else
static void prepare_threads(void) {}

static void in_parallel(int threads, Py_ssize_t count, Work work, void *job) {
    (void)threads;
    if (count) work(job, 0, count);
}
#endif
