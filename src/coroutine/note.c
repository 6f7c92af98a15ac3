#include "coroutine/note.h"
#ifdef COIL__ASAN
#include <pthread.h>
#endif

#ifdef COIL__TSAN
_Thread_local void *coil__note_ended_fiber;
#endif

void coil__note_thread(struct coil__note *note)
{
    (void)note;
#ifdef COIL__ASAN
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;

    if (!pthread_getattr_np(pthread_self(), &attributes)) {
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
    }
    note->low = low;
    note->size = size;
    note->fake_stack = NULL;
#endif
#ifdef COIL__TSAN
    note->fiber = __tsan_get_current_fiber();
#endif
}
