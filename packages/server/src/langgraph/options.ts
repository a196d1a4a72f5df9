/** Options of the LangGraph protocol. */
import type { LongTerm } from "@statewright/core";

/** Options of `langgraph`. */
export interface LangGraphOptions {
  /**
   * Path of the protocol below the base path of the server. Clients use it as part of `apiUrl`. Default `/langgraph`;
   * `""` for the root.
   */
  readonly prefix?: string;
  /**
   * Shows approvals as one interrupt with `action_requests`, and calls of client tools as `{ type: "tool", toolCall }`.
   * False: every interrupt is shown with its own payload. Default true.
   */
  readonly hitl?: boolean;
  /**
   * Long-term store for the `/store` routes. The namespaces of a caller begin with its tenant. Default: none, and the
   * routes answer 404.
   */
  readonly longTerm?: LongTerm;
}

/** Options with their defaults. */
export interface LangGraphSettings {
  readonly hitl: boolean;
  readonly longTerm: LongTerm | undefined;
}
