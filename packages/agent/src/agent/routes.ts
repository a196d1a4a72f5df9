/** Edges of agent graphs: the public namespace `agentRoutes`. */
// biome-ignore-start lint/performance/noBarrelFile: members of the namespace `agentRoutes`

export { agentTurns, agentTurnsInput } from "../turns/agent-turn-kind.ts";
export { afterAnswer, afterModel, afterTools } from "./agent-routes.ts";
// biome-ignore-end lint/performance/noBarrelFile: members of the namespace `agentRoutes`
