/** LangGraph SDK protocol: serve graphs to the unmodified clients of LangGraph. */
export { langgraph } from "./langgraph/langgraph-protocol.ts";
export type { LangGraphOptions } from "./langgraph/options.ts";
