# The image of the head and of the workers of a cluster (docs/cluster.md): docker build -t my-registry/clops-sweep .
# Without a GPU: --build-arg RAY=2.60.0-py311-cpu
ARG RAY=2.60.0-py311-gpu
FROM rayproject/ray:${RAY}

COPY --chown=ray:users . /opt/clops-sweep

USER root
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# hadolint ignore=DL3008  (the newest compiler of the base is as good as any)
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && su ray -c "/home/ray/anaconda3/bin/pip install --no-cache-dir -e /opt/clops-sweep" \
    && apt-get purge --yes --auto-remove g++ \
    && rm -rf /var/lib/apt/lists/*

USER ray
WORKDIR /home/ray
