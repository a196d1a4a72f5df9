import { otelTracer } from "@statewright/otel";
import type { Agent } from "statewright";
import { traceRun } from "statewright/inspect";

// a run as spans of OpenTelemetry
export const answered = (agent: Agent, input: string) => traceRun(agent.run({ input }), otelTracer()).result;
