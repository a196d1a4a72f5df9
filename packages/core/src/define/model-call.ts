/** Model call of a node. */
import type { ModelCallPolicy } from "../model/call-policy.ts";
import type { ModelRequest } from "../model/model.ts";
import type { AnyModel } from "../model/model-source.ts";
import type { Middleware } from "../tool/policy/middleware.ts";

/**
 * Model call: the model, the request, and middleware with model hooks. Without `retry` a request is made once;
 * `retry`, `timeouts` and `fallback` in a middleware's `modelCall` take precedence over those of the call.
 */
export interface ModelCall extends ModelCallPolicy {
  readonly model: AnyModel;
  readonly request: ModelRequest;
  readonly middleware?: readonly Middleware[];
}
