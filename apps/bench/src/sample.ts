/**
 * Time of some work in microseconds. CPU time counts all threads of the process, including garbage collector and
 * compiler.
 */
export interface Sample {
  readonly cpuUs: number;
  readonly wallUs: number;
}
