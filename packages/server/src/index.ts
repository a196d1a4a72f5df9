/** HTTP server of graphs and agents: native API, access, streams. Other protocols are entries of their own. */
export type { AccessRequest, Action, Caller } from "./access/caller.ts";
export { type JwtOptions, jwt } from "./access/jwt.ts";
export type { ServerAccess } from "./access/server-access.ts";
export type { Server, ServerRoute } from "./create-server.ts";
export type { CorsOptions } from "./http/cors.ts";
export type { ServerLimits } from "./http/limits.ts";
export type { Problem } from "./http/problem.ts";
export type { RateDecision, RateLimit, RateLimitOptions } from "./http/rate-limit.ts";
export { createJsonLog, type RequestLine } from "./http/request-log.ts";
export type {
  HttpMethod,
  Protocol,
  Route,
  RouteCall,
  SseFrame,
  SseLine,
  StreamOptions,
} from "./http/route.ts";
export type { Listener, ListenOptions } from "./listen.ts";
export { serve } from "./serve.ts";
export type { ServeOptions } from "./serve-options.ts";
export type {
  AnswerRequest,
  CallerService,
  CancelRequest,
  ContinueRequest,
  EventRequest,
  GraphDetails,
  GraphView,
  Page,
  PageOptions,
  RunView,
  StartedRun,
  StartRequest,
  StateView,
  ThreadFrame,
  ThreadQuery,
  ThreadView,
  WaitingView,
} from "./service/caller-service.ts";
export { createServices, type Services } from "./service/create-services.ts";
export type {
  AuditEntry,
  Authorize,
  ContextOf,
  Expose,
  ExposureRequest,
  ServiceOptions,
} from "./service/service-options.ts";
