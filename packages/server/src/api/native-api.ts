/** Native API: all routes of the protocol `api`. */
import { formatProblem } from "../http/problem-response.ts";
import type { Protocol } from "../http/route.ts";
import type { ApiRoute } from "./define-route.ts";
import { createOpenApi } from "./openapi.ts";
import { createArtifactRoutes } from "./routes/artifact-routes.ts";
import { createBulkRoutes } from "./routes/bulk-routes.ts";
import { createEventRoutes } from "./routes/event-routes.ts";
import { createGraphRoutes } from "./routes/graph-routes.ts";
import { createMoveRoutes } from "./routes/move-routes.ts";
import { createRunRoutes } from "./routes/run-routes.ts";
import { createScheduleRoutes } from "./routes/schedule-routes.ts";
import { createStateRoutes } from "./routes/state-routes.ts";
import { createThreadRoutes } from "./routes/thread-routes.ts";
import type { WireInfo } from "./schemas/info.ts";

/** Options of the native API. */
export interface NativeApiOptions {
  /** Describes the server for `GET /info`. */
  readonly getInfo: () => WireInfo;
}

/** Native API with its OpenAPI document. */
export interface NativeApi extends Protocol {
  readonly routes: readonly ApiRoute[];
  /** OpenAPI 3.1 document of the routes. */
  readonly getDocument: () => unknown;
}

/** Creates the native API. */
export function createNativeApi({ getInfo }: NativeApiOptions): NativeApi {
  let document: unknown;
  const getDocument = (): unknown => {
    document ??= createOpenApi(routes, getInfo().version);
    return document;
  };
  const routes: readonly ApiRoute[] = [
    ...createGraphRoutes({ getInfo, getDocument }),
    ...createThreadRoutes(),
    ...createMoveRoutes(),
    ...createRunRoutes(),
    ...createBulkRoutes(),
    ...createStateRoutes(),
    ...createEventRoutes(),
    ...createArtifactRoutes(),
    ...createScheduleRoutes(),
  ];
  return { name: "api", prefix: "/api", routes, formatProblem, getDocument };
}
