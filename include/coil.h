/**
 * @file
 * All of coil.
 */
#ifndef COIL_H
#define COIL_H

#include <coil/address.h>
#include <coil/channel.h>
#include <coil/context.h>
#include <coil/endpoint.h>
#include <coil/error.h>
#include <coil/event.h>
#include <coil/group.h>
#include <coil/mutex.h>
#include <coil/operation.h>
#include <coil/poll.h>
#include <coil/scope.h>
#include <coil/semaphore.h>
#include <coil/signal_set.h>
#include <coil/stop_source.h>
#include <coil/task.h>
#include <coil/tcp.h>
#include <coil/time.h>
#include <coil/version.h>

#endif
