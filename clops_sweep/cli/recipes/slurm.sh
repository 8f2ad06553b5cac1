#!/bin/bash
#SBATCH --job-name=clops-sweep
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
##SBATCH --gpus-per-node=1
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --no-kill
#SBATCH --signal=B:USR1@120
#SBATCH --open-mode=append

# One Ray cluster on all nodes of the job. The store, the space and the environment are on shared storage.
space=space.py
results=results

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)
head=$(getent ahostsv4 "$head" | awk '$1 !~ /^127/ {print $1; exit}')
head=${head:-$(hostname -I | cut -d " " -f 1)}
answers() { (: >"/dev/tcp/$head/$1") 2>/dev/null; }
port=$((10000 + SLURM_JOB_ID % 10000 * 2)) # and the next one; other jobs may run on the same node
while answers "$port" || answers "$((port + 1))"; do port=$((port + 2)); done

RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export head port RAY_AUTH_TOKEN RAY_AUTH_MODE=token RAY_worker_niceness=0 RAY_TMPDIR="/tmp/clops-sweep-$SLURM_JOB_ID"

# shellcheck disable=SC2016
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" --kill-on-bad-exit=0 --wait=0 bash -c '
  node=(--block --num-cpus "$SLURM_CPUS_ON_NODE" --num-gpus "${SLURM_GPUS_ON_NODE:-0}"
    --min-worker-port 0 --max-worker-port 0 --dashboard-agent-listen-port 0 --disable-usage-stats)
  mkdir -p "$RAY_TMPDIR"
  trap "kill \$ray; wait \$ray; rm -rf \$RAY_TMPDIR; exit" TERM
  if [ "$SLURM_PROCID" -eq 0 ]; then
    ray start --head --node-ip-address "$head" --port "$port" --ray-client-server-port "$((port + 1))" \
      --include-dashboard=false "${node[@]}" &
  else
    for _ in {1..300}; do (: >"/dev/tcp/$head/$port") 2>/dev/null && break || sleep 1; done
    ray start --address "$head:$port" "${node[@]}" &
  fi
  ray=$!
  wait "$ray"
' &
cluster=$!
until answers "$port"; do
  kill -0 "$cluster" 2>/dev/null || exit 1 # Ray has not started
  sleep 1
done

trap 'kill -USR1 "$sweep"' USR1 # two minutes before the time limit: checkpoint and stop
trap : TERM                     # preemption: Slurm signals the sweep as well as this script

clops-sweep "$space" --results "$results" --address "$head:$port" --stop-status 75 &
sweep=$!
wait "$sweep"
status=$?
while kill -0 "$sweep" 2>/dev/null; do # a signal ended the wait, not the sweep
  wait "$sweep"
  status=$?
done
kill "$cluster"
wait "$cluster"
if [ "$status" -eq 75 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$status"
