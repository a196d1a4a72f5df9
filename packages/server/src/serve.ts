/** HTTP server of an engine: native API, access, limits, streams, and further protocols. */
import { packageVersion } from "@statewright/core/adapter";
import { createNativeApi } from "./api/native-api.ts";
import { createServer, type Server, type ServerContext, type ServerParts } from "./create-server.ts";
import type { Protocol } from "./http/route.ts";
import type { ServeOptions } from "./serve-options.ts";
import { createServices } from "./service/create-services.ts";

/**
 * Creates the HTTP server of an engine. It does not start the engine, and listens nowhere until `listen`. Throws
 * `invalid_option` for an unknown or invalid option.
 *
 * @example
 * const server = serve({ engine: host, access: { token: process.env.TOKEN }, protocols: [langgraph()] });
 * export default { fetch: server.fetch };
 */
export function serve(options: ServeOptions): Server {
  return createServer(options, (context) => createParts(options, context));
}

function createParts(options: ServeOptions, { limits, place }: ServerContext): ServerParts {
  const { engine, protocols = [], role = "serve", access, expose, redact, exposeErrors, cursorKey, onAudit } = options;
  const { schedules } = options;
  const { authorize, contextOf, scope } = typeof access === "object" ? access : {};
  const services = createServices({
    ...{ engine, role, authorize, contextOf, scope, expose, redact, exposeErrors, cursorKey, onAudit, schedules },
  });
  const nativeApi = createNativeApi({
    getInfo: () => ({
      name: "statewright",
      version: packageVersion,
      role,
      protocols: all.map(({ name, prefix }) => ({ name, path: `${place.publicPath}${prefix}` })),
      limits: { ...limits },
    }),
  });
  const all: readonly Protocol[] = [nativeApi, ...protocols];
  return {
    protocols: all,
    forCaller: services.forCaller,
    drainEvents: services.drainEvents,
    getDocument: nativeApi.getDocument,
  };
}
