#include "cri_version.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/unix_socket.h"
#include "rpc/grpc.h"
#include "rpc/pb.h"

#define TIMEOUT_S 5
#define VERSION_METHOD "/runtime.v1.RuntimeService/Version"

struct version_response {
	const char *runtime_name, *runtime_version;
};

/* Field numbers of VersionResponse in CRI's api.proto. */
static const struct pb_field version_fields[] = {
	PB_FIELD(struct version_response, 2, PB_STRING, runtime_name),
	PB_FIELD(struct version_response, 3, PB_STRING, runtime_version),
};
static const struct pb_message version_message = PB_TABLE(struct version_response, version_fields);

struct version_call {
	struct arena *a;
	bool is_done;
	struct version_response response;
	struct err *err;
	int result;
};

static void on_response(void *user, int32_t call, const struct grpc_response *response)
{
	struct version_call *c = user;

	(void)call;
	c->is_done = true;
	if (response->code != GRPC_OK)
		c->result = err_set(c->err, EPROTO, PRI_STR, FMT_STR(response->text));
	else
		c->result =
			pb_decode(&version_message, response->message, c->a, &c->response, c->err);
}

static int send_all(int fd, struct grpc *g)
{
	struct str bytes;

	while (grpc_send(g, &bytes))
		while (bytes.n) {
			ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

			if (n < 0)
				return -errno;
			bytes = str_skip(bytes, (size_t)n);
		}
	return 0;
}

static int exchange(int fd, struct grpc *g, struct version_call *c, struct err *err)
{
	char buffer[4096];
	int r = send_all(fd, g);

	while (r == 0 && !c->is_done) {
		ssize_t n = recv(fd, buffer, sizeof(buffer), 0);

		if (n <= 0)
			return err_set(err, n ? errno : ECONNRESET, "%s",
				       n ? strerror(errno) : "connection closed");
		r = grpc_receive(g, (struct str){ buffer, (size_t)n }, err);
		if (r == 0)
			r = send_all(fd, g);
	}
	return r < 0 ? r : c->result;
}

int cri_version_read(const char *socket_path, struct arena *a, struct str *ret_name,
		     struct str *ret_version, struct err *err)
{
	struct version_call c = { .a = a, .err = err };
	AUTO_CLOSE int fd = unix_socket_connect(socket_path, TIMEOUT_S);
	struct grpc *g;
	int r;

	if (fd < 0)
		return err_set(err, -fd, "%s: %s", socket_path, strerror(-fd));
	g = grpc_client_new(on_response, &c);
	r = grpc_call(g, VERSION_METHOD, STR(""));
	if (r >= 0)
		r = exchange(fd, g, &c, err);
	grpc_free(g);
	if (r < 0)
		return err_wrap(err, "%s", socket_path);
	*ret_name = str_from(c.response.runtime_name);
	*ret_version = str_from(c.response.runtime_version);
	return 0;
}
