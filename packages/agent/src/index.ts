/** Statewright agents: a model and its tools as an ordinary graph. */
export {
  type Agent,
  type AgentInput,
  type AgentOptions,
  type AgentResumeOptions,
  type AgentRunOptions,
  type AgentState,
  type AgentTypes,
  createAgent,
  type NoState,
} from "./create-agent.ts";
